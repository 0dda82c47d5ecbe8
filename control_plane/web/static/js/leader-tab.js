// For browsers without shared workers: one tab holds the connection for all, and passes on what it hears.
import { Connection } from "./connection.js";

const CHANNEL = "fleet-live";

/**
 * As the port of a shared worker: takes messages with topics, hands back news.
 * @param {(news: import("./connection.js").News) => void} hear
 */
export function leaderTab(hear) {
  // Only a secure address has locks, by which the tabs agree on one of them: elsewhere, each has a connection.
  return navigator.locks ? oneForAll(hear) : ownConnection(hear);
}

/** @param {(news: import("./connection.js").News) => void} hear */
function ownConnection(hear) {
  const connection = new Connection(hear);
  return {
    /** @param {{topics?: Record<string, string>, leave?: boolean}} message */
    postMessage({ topics, leave }) {
      if (leave) connection.close();
      else connection.follow(new Map(Object.entries(topics ?? {})));
    },
  };
}

/** @param {(news: import("./connection.js").News) => void} hear */
function oneForAll(hear) {
  const channel = new BroadcastChannel(CHANNEL);
  const me = Math.random().toString(36).slice(2);
  /** @type {Map<string, Map<string, string>>} */
  const tabs = new Map();
  /** @type {Record<string, string>} */
  let own = {};
  /** @type {Connection | null} */
  let connection = null;

  /** @param {string} tab @param {Record<string, string>} shown @param {(news: import("./connection.js").News) => void} tell */
  function take(tab, shown, tell) {
    const topics = new Map(Object.entries(shown));
    tabs.set(tab, topics);
    connection?.missed(topics).forEach(tell);
  }
  const follow = () => connection?.follow(new Map([...tabs.values()].flatMap((topics) => [...topics])));
  channel.onmessage = ({ data }) => {
    if (data.news) return hear(data.news);
    if (data.calls) return channel.postMessage({ tab: me, topics: own });
    if (data.leave) tabs.delete(data.tab);
    else take(data.tab, data.topics, (news) => channel.postMessage({ news }));
    follow();
  };
  navigator.locks.request(CHANNEL, () => {
    connection = new Connection((news) => { hear(news); channel.postMessage({ news }); });
    tabs.set(me, new Map(Object.entries(own)));
    channel.postMessage({ calls: true });
    follow();
    return new Promise(() => {}); // held until this tab closes
  });
  return {
    /** @param {{topics?: Record<string, string>, leave?: boolean}} message */
    postMessage(message) {
      own = message.topics ?? {};
      if (connection) { take(me, own, hear); follow(); }
      else channel.postMessage({ tab: me, ...message });
    },
  };
}
