"""What a hostile page tries in the browser of a logged-in user, as scripts that return all that they could read."""

from __future__ import annotations

from dataclasses import dataclass

PAGE = """<!doctype html><title>Kittens</title><script>
const posted = (address, fields, options = {}) => new Promise((resolve) => {
  const frame = document.createElement("iframe"), form = document.createElement("form");
  frame.name = "f" + Math.random();
  document.body.append(frame, form);
  Object.assign(form, { method: "post", action: address, target: frame.name, ...options });
  for (const [name, value] of Object.entries(fields)) {
    const input = document.createElement("input");
    Object.assign(input, { type: "hidden", name, value });
    form.append(input);
  }
  frame.onload = () => { if (inside(frame) !== "") resolve(inside(frame)); };
  form.submit();
});
const inside = (frame) => {
  try {
    if (frame.contentWindow.location.href === "about:blank") return "";
    return frame.contentDocument.documentElement.outerHTML;
  } catch (error) { return String(error); }
};
const fetched = async (address, options = {}) => {
  try {
    const answer = await fetch(address, { credentials: "include", ...options });
    return `${answer.type} ${await answer.text()}`;
  } catch (error) { return String(error); }
};
const included = (tag, attributes) => new Promise((resolve) => {
  const element = document.createElement(tag);
  element.onload = () => resolve(`loaded ${inside(element)} ${element.naturalWidth} ${Object.keys(window)}`);
  element.onerror = () => resolve("refused");
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  (tag === "link" ? document.head : document.body).append(element);
});
const event = (target, names) => new Promise((resolve) => {
  for (const name of names) target.addEventListener(name, (seen) => resolve(`${name} ${seen.data}`), { once: true });
});
</script><body>"""


@dataclass(frozen=True)
class Try:
    """One of them: the script's body knows `fleet`, `order` and the attacker's `token` and `link` for the fleet."""

    what: str
    script: str
    refused: bool = False
    """The fleet receives a request that it must refuse, and count, as one of another site."""


_ORDER = '{"prompt": "Steal it", "project": "demo"}'
TRIES = (
    Try("submit an order by a form", f"posted(fleet + '/orders', {_ORDER})", refused=True),
    Try(
        "… of several parts", f"posted(fleet + '/orders', {_ORDER}, {{ enctype: 'multipart/form-data' }})", refused=True
    ),
    Try(
        "… with JSON as plain text",
        'posted(fleet + \'/api/v1/orders\', { \'{"prompt":"Steal it","project":"demo","x":"\': \'"}\' },'
        " { enctype: 'text/plain' })",
        refused=True,
    ),
    Try("cancel an order by a form", "posted(`${fleet}/orders/${order}/cancel`, {})", refused=True),
    Try(
        "… of a page without an origin",
        "included('iframe', { sandbox: 'allow-scripts allow-forms', srcdoc: `<form method=post action="
        "${fleet}/orders/${order}/cancel></form><script>document.forms[0].submit()<\\/script>` })"
        ".then(() => fetched(fleet + '/orders', { method: 'POST', mode: 'no-cors' }))",
        refused=True,
    ),
    Try(
        "submit by a request without preflight",
        f"fetched(fleet + '/api/v1/orders', {{ method: 'POST', mode: 'no-cors', body: '{_ORDER}' }})",
        refused=True,
    ),
    Try(
        "… with one",
        f"fetched(fleet + '/api/v1/orders', {{ method: 'POST', body: '{_ORDER}',"
        " headers: { 'Content-Type': 'application/json' } })",
    ),
    Try(
        "… that claims a key", "fetched(fleet + '/orders', { method: 'POST', headers: { 'X-Fleet-Browser-Key': 'k' } })"
    ),
    Try("delete", "fetched(fleet + '/api/v1/projects/demo', { method: 'DELETE' })"),
    Try("replace", "fetched(fleet + '/api/v1/projects/demo', { method: 'PUT', body: '{}' })"),
    Try("log the user in as another by a token", "posted(fleet + '/login', { token })", refused=True),
    Try("… by a link", "posted(fleet + '/login', { link })", refused=True),
    Try(
        "use a link by fetching it in advance",
        "included('link', { rel: 'prefetch', href: `${fleet}/login?token=${link}` })",
    ),
    Try("… in a frame", "included('iframe', { src: `${fleet}/login?token=${link}` })"),
    Try("log the user out by a form", "posted(fleet + '/logout', {})", refused=True),
    Try("… by an image", "included('img', { src: fleet + '/logout' })"),
    Try(
        "… by a request without an answer",
        "fetched(fleet + '/logout', { method: 'POST', mode: 'no-cors' })",
        refused=True,
    ),
    Try("read the board", "fetched(fleet + '/')"),
    Try("… without asking for its content", "fetched(fleet + '/', { mode: 'no-cors' })"),
    Try("read an order", "fetched(`${fleet}/orders/${order}`)"),
    Try("read the list of orders", "fetched(fleet + '/api/v1/orders')"),
    Try(
        "read live events",
        "event(new EventSource(`${fleet}/api/v1/orders/${order}/events`, { withCredentials: true }),"
        " ['error', 'message', 'step', 'order'])",
    ),
    Try(
        "open a web socket",
        "event(new WebSocket(fleet.replace('http', 'ws') + `/api/v1/orders/${order}/events`),"
        " ['error', 'message', 'open'])",
    ),
    Try("include the list of orders as a script", "included('script', { src: fleet + '/api/v1/orders' })"),
    Try("… a page", "included('script', { src: `${fleet}/orders/${order}` })"),
    Try("… the fleet's own script, for its key", "included('script', { src: fleet + '/static/js/app.js' })"),
    Try("include a page as a style sheet", "included('link', { rel: 'stylesheet', href: `${fleet}/orders/${order}` })"),
    Try("… as an image", "included('img', { src: `${fleet}/orders/${order}` })"),
    Try("show a page in a frame, for clicks", "included('iframe', { src: `${fleet}/orders/${order}` })"),
    Try("… in an object", "included('object', { data: `${fleet}/orders/${order}`, type: 'text/html' })"),
    Try("… in an embedded element", "included('embed', { src: `${fleet}/orders/${order}`, type: 'text/html' })"),
    Try("run a worker of the fleet's origin", "event(new Worker(fleet + '/static/js/app.js'), ['error', 'message'])"),
    Try("put a service worker before it", "navigator.serviceWorker.register(fleet + '/static/js/app.js')"),
)
