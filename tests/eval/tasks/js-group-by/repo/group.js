/** Group items by what `key` returns for them. */
function groupBy(items, key) {
  const groups = {};
  for (const item of items) {
    const name = key(item);
    if (!groups[name]) groups[name] = [];
    groups[name].push(item);
  }
  return groups;
}

module.exports = { groupBy };
