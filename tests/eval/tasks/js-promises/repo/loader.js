/** Read files one after the other; `done(error, texts)`. Those that are missing are left out. */
function load(read, names, done) {
  const texts = {};
  function next(at) {
    if (at === names.length) return done(null, texts);
    read(names[at], (error, text) => {
      if (error && error.code !== "ENOENT") return done(error);
      if (!error) texts[names[at]] = text;
      next(at + 1);
    });
  }
  next(0);
}

module.exports = { load };
