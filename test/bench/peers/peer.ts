/** A list that a peer walks through. */
export interface PeerList {
  name: string;
  /** Full URL of its first page. */
  url: string;
}

/** What a peer is to do: go through lists of one company, page by page, and keep to its limit. */
export interface PeerOrder {
  /** Its name in `PEERS`. */
  peer: string;
  lists: PeerList[];
  token: string;
  redisUrl: string;
  /** For one that stores. */
  dir: string;
  /** Begins the names of all that it keeps in Redis. */
  prefix: string;
  /** Requests in a window that this process may send. */
  limit: number;
  windowMs: number;
  /** Its Redis knows where it stands: it was killed before. */
  resume: boolean;
}

/** Gets ready; what it answers begins the work. */
export type Peer = (order: PeerOrder) => Promise<() => Promise<void>>;
