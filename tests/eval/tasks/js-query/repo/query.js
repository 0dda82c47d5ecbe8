function parse(query) {
  const result = {};
  for (const part of query.replace(/^\?/, "").split("&")) {
    const [key, value] = part.split("=");
    result[key] = decodeURIComponent(value);
  }
  return result;
}

module.exports = { parse };
