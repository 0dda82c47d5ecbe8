"""What a hostile page tries in the browser of a logged-in user, as scripts that return all that they could read."""

from __future__ import annotations

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


_ORDER = '{"prompt": "Steal it", "project": "demo"}'
REFUSED = {
    "submit an order by a form": f"posted(fleet + '/orders', {_ORDER})",
    "… with JSON as plain text": (
        'posted(fleet + \'/api/v1/orders\', { \'{"prompt":"Steal it","project":"demo","x":"\': \'"}\' },'
        " { enctype: 'text/plain' })"
    ),
    "cancel an order by a form": "posted(`${fleet}/orders/${order}/cancel`, {})",
    "… of a page without an origin": (
        "included('iframe', { sandbox: 'allow-scripts allow-forms', srcdoc: `<form method=post action="
        "${fleet}/orders/${order}/cancel></form><script>document.forms[0].submit()<\\/script>` })"
        ".then(() => fetched(fleet + '/orders', { method: 'POST', mode: 'no-cors' }))"
    ),
    "log the user in as another by a token": "posted(fleet + '/login', { token })",
    "… by a link": "posted(fleet + '/login', { link })",
    "log the user out by a form": "posted(fleet + '/logout', {})",
}
"""Scripts whose requests the fleet receives and must refuse, and count, as those of another site.

They know `fleet`, `order` and the attacker's `token` and `link` for the fleet.
"""
BLOCKED = {
    "submit by a request with preflight": (
        f"fetched(fleet + '/api/v1/orders', {{ method: 'POST', body: '{_ORDER}',"
        " headers: { 'Content-Type': 'application/json' } })"
    ),
    "… that claims a key": "fetched(fleet + '/orders', { method: 'POST', headers: { 'X-Fleet-Browser-Key': 'k' } })",
    "delete": "fetched(fleet + '/api/v1/projects/demo', { method: 'DELETE' })",
    "use a link by fetching it in advance": (
        "included('link', { rel: 'prefetch', href: `${fleet}/login?token=${link}` })"
    ),
    "… in a frame": "included('iframe', { src: `${fleet}/login?token=${link}` })",
    "log the user out by an image": "included('img', { src: fleet + '/logout' })",
    "read an order": "fetched(`${fleet}/orders/${order}`)",
    "read the list of orders": "fetched(fleet + '/api/v1/orders')",
    "read live events": (
        "event(new EventSource(`${fleet}/api/v1/orders/${order}/events`, { withCredentials: true }),"
        " ['error', 'message', 'step', 'order'])"
    ),
    "open a web socket": (
        "event(new WebSocket(fleet.replace('http', 'ws') + `/api/v1/orders/${order}/events`),"
        " ['error', 'message', 'open'])"
    ),
    "include the list of orders as a script": "included('script', { src: fleet + '/api/v1/orders' })",
    "… the fleet's own script, for its key": "included('script', { src: fleet + '/static/js/app.js' })",
    "show a page in a frame, for clicks": "included('iframe', { src: `${fleet}/orders/${order}` })",
    "run a worker of the fleet's origin": "event(new Worker(fleet + '/static/js/app.js'), ['error', 'message'])",
}
"""Scripts that the browser stops, as the fleet's answers tell it to, or that get nothing."""
