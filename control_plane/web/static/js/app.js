// Every page loads this one module; each behavior is a module of its own, configured by data attributes alone.
import "./forms.js";
import "./drafts.js";
import "./live.js";
import "./times.js";
import "./theme.js";
import "./keys.js";
import "./palette.js";
import "./dialogs.js";
import "./notices.js";
import "./attention.js";
import "../vendor/clipboard-copy.js";
