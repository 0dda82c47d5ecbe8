const { load } = require("./loader.js");

/** Print how long each text is; `done(error)`. */
function main(read, names, print, done) {
  load(read, names, (error, texts) => {
    if (error) return done(error);
    for (const name of Object.keys(texts)) print(`${name}: ${texts[name].length}`);
    done(null);
  });
}

module.exports = { main };
