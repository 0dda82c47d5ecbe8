// Parts of pages: as the server renders them, or made here.

/** A part of a page as it is now. @param {string} address */
export const getPart = (address) => fetch(address, { headers: { Accept: "text/x-part" }, cache: "no-store" });

/** An address of the API in the organization that the page shows: alone, it would act in that of the log-in. @param {string} path */
export function inOrganization(path) {
  const { organization } = document.body.dataset;
  const address = new URL(path, location.origin);
  if (organization) address.searchParams.set("org", organization);
  return address;
}

/** @param {string} html from our server, which escapes every text in it */
export const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

/** A part of a page, to take elements from; null if the server does not give it. @param {string} address */
export async function readPart(address) {
  const answer = await getPart(address).catch(() => null);
  return answer?.ok ? parsed(await answer.text()) : null;
}

/**
 * A new element with these properties, which contains these elements and texts.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name @param {Partial<HTMLElementTagNameMap[Name]>} properties @param {...(Node | string)} content
 */
export function element(name, properties, ...content) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...content);
  return made;
}

/** @param {string} textContent @param {() => void} onclick */
export const button = (textContent, onclick) => element("button", { type: "button", textContent, onclick });
