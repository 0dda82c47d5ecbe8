// The shared worker: all tabs of a browser live on its one connection.
import { Connection } from "./connection.js";

/** @type {Map<MessagePort, Map<string, string>>} what each tab shows, with the versions that it has */
const tabs = new Map();

const connection = new Connection((news) => {
  for (const [port, topics] of tabs) {
    if (news.type === "status" || topics.has(news.topic)) port.postMessage(news);
    if (news.type === "changed" && topics.has(news.topic)) topics.set(news.topic, news.version);
  }
});

function follow() {
  const wanted = new Map();
  // The last page leaves: its worker ends with it, and a request of it would be cut off.
  if (!tabs.size) return connection.close();
  for (const topics of tabs.values()) for (const [topic, version] of topics) if (!wanted.has(topic)) wanted.set(topic, version);
  connection.follow(wanted);
}

// @ts-expect-error: the types of a page's window, which a shared worker does not have
self.onconnect = (/** @type {MessageEvent} */ event) => {
  const port = event.ports[0];
  port.onmessage = ({ data }) => {
    if (data.leave) {
      tabs.delete(port);
      return follow();
    }
    const topics = new Map(Object.entries(data.topics));
    tabs.set(port, topics);
    for (const news of connection.missed(topics)) port.postMessage(news);
    follow();
  };
};
