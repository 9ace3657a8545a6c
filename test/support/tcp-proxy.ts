import { EventEmitter } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterAll } from 'vitest';

/** What the proxy does with bytes. Those that come back from the target are called the answer. */
type Mode =
  | { kind: 'pass' }
  /** Takes what comes and hands nothing on; connections stay, and nobody hears that the other side has left. */
  | { kind: 'silent' }
  /** Hands the answer on so many bytes at a time. */
  | { kind: 'slow'; bytes: number; everyMs: number }
  /** Breaks each connection off when so many more bytes of its answer have gone through. */
  | { kind: 'cut'; afterBytes: number };

/** What can be awaited with `once(proxy.events, name)`; each says how many connections there are then. */
interface ProxyEvents {
  /** A connection was taken, and leads to the target. */
  connection: [open: number];
  /** A connection is gone, whoever ended it. */
  close: [open: number];
  /** Bytes were handed on, either way. */
  data: [open: number];
  /** Bytes came, or an end, while the proxy is silent. */
  held: [open: number];
  /** A connection was broken off after its bytes. */
  cut: [open: number];
}

/** A proxy in front of any TCP server. Every change holds for connections that are open, too, but for `lead`. */
export interface TcpProxy {
  /** Of 127.0.0.1. It stays the same, also while it refuses. */
  port: number;
  events: EventEmitter<ProxyEvents>;
  /** How many connections are open. */
  readonly open: number;
  /** Back to normal: what was held back goes on its way; connections are taken again. */
  pass(): Promise<void>;
  /** As when the network is gone and nobody has said so: no byte arrives, no connection ends. */
  silence(): void;
  /** The answer drips. */
  slow(bytes: number, everyMs: number): void;
  /** Answers break off, each connection's after so many bytes from now. */
  cutAfter(bytes: number): void;
  /** Takes no connection any more (ECONNREFUSED), and breaks off those that are open. */
  refuse(): Promise<void>;
  /** Breaks off what is open; new connections are taken. */
  breakOff(): void;
  /** New connections lead to another port. */
  lead(targetPort: number): void;
}

/** Most bytes that are held back in one direction before no more are taken. */
const MOST_HELD_BYTES = 64 * 1024;

/** Starts a proxy in front of a port of 127.0.0.1; it ends when the test file is through. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const events = new EventEmitter<ProxyEvents>();
  const links = new Set<Link>();
  let target = targetPort;
  let mode: Mode = { kind: 'pass' };

  const server = createServer({ allowHalfOpen: true }, (client) => {
    const tell = (what: keyof ProxyEvents) => events.emit(what, links.size);
    const link = new Link(client, connect({ port: target, host: '127.0.0.1', allowHalfOpen: true }), {
      tell,
      closed: () => {
        links.delete(link);
        tell('close');
      },
    });
    links.add(link);
    link.change(mode);
    tell('connection');
  });
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
  const change = (to: Mode) => {
    mode = to;
    for (const link of links) link.change(mode);
  };
  const breakOff = () => {
    for (const link of links) link.destroy();
  };

  await listen(0);
  const { port } = server.address() as AddressInfo;
  afterAll(() => {
    breakOff();
    server.close();
  });
  return {
    port,
    events,
    get open() {
      return links.size;
    },
    pass: async () => {
      change({ kind: 'pass' });
      if (!server.listening) await listen(port);
    },
    silence: () => change({ kind: 'silent' }),
    slow: (bytes, everyMs) => change({ kind: 'slow', bytes, everyMs }),
    cutAfter: (afterBytes) => change({ kind: 'cut', afterBytes }),
    refuse: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      breakOff();
      await closed;
    },
    breakOff,
    lead: (to) => {
      target = to;
    },
  };
}

interface LinkParts {
  tell(what: 'data' | 'held' | 'cut'): void;
  closed(): void;
}

/** One connection of a client, and the one to the target that goes with it. */
class Link {
  readonly #ends: readonly Socket[];
  readonly #parts: LinkParts;
  readonly #request: Direction;
  readonly #answer: Direction;
  #open = 2;

  constructor(client: Socket, target: Socket, parts: LinkParts) {
    this.#ends = [client, target];
    this.#parts = parts;
    this.#request = new Direction(client, target, parts.tell);
    this.#answer = new Direction(target, client, parts.tell, () => {
      this.destroy();
      parts.tell('cut');
    });
    for (const end of this.#ends) {
      // Trouble of one side ends the other, too; while the proxy is silent, only when it is over.
      end.on('error', () => undefined);
      end.once('close', () => this.#closed());
    }
  }

  change(mode: Mode): void {
    this.#request.change(mode.kind === 'silent' ? mode : { kind: 'pass' });
    this.#answer.change(mode);
  }

  destroy(): void {
    for (const direction of [this.#request, this.#answer]) direction.stop();
    for (const end of this.#ends) end.destroy();
  }

  #closed(): void {
    this.#open--;
    if (this.#open === 0) this.#parts.closed();
  }
}

/** The way of bytes from one socket to another. */
class Direction {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #tell: LinkParts['tell'];
  readonly #onCut: () => void;
  #mode: Mode = { kind: 'pass' };
  #held: Buffer[] = [];
  #ended = false;
  #tick: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, tell: LinkParts['tell'], onCut: () => void = () => undefined) {
    this.#from = from;
    this.#to = to;
    this.#tell = tell;
    this.#onCut = onCut;
    from.on('data', (chunk: Buffer) => {
      this.#held.push(chunk);
      if (this.#isSilent()) tell('held');
      this.#move();
    });
    const onEnd = () => {
      if (this.#ended) return;
      this.#ended = true;
      if (this.#isSilent()) tell('held');
      this.#move();
    };
    from.once('end', onEnd).once('close', onEnd);
    to.on('drain', () => this.#move());
  }

  change(mode: Mode): void {
    this.#mode = { ...mode };
    clearInterval(this.#tick);
    this.#tick = mode.kind === 'slow' ? setInterval(() => this.#hand(mode.bytes), mode.everyMs) : undefined;
    this.#move();
  }

  stop(): void {
    clearInterval(this.#tick);
    this.#held = [];
  }

  #isSilent(): boolean {
    return this.#mode.kind === 'silent';
  }

  #move(): void {
    const mode = this.#mode;
    if (mode.kind === 'pass') this.#hand(Number.POSITIVE_INFINITY);
    if (mode.kind === 'cut') {
      mode.afterBytes -= this.#hand(mode.afterBytes);
      if (mode.afterBytes === 0) this.#onCut();
    }
    if (this.#heldBytes() < MOST_HELD_BYTES) this.#from.resume();
    else this.#from.pause();
  }

  /** @returns how many bytes went */
  #hand(most: number): number {
    const held = Buffer.concat(this.#held);
    const going = this.#to.writableNeedDrain ? held.subarray(0, 0) : held.subarray(0, most);
    this.#held = going.length === held.length ? [] : [held.subarray(going.length)];
    if (going.length > 0) {
      this.#to.write(going);
      this.#tell('data');
    }
    if (this.#ended && this.#held.length === 0) {
      clearInterval(this.#tick);
      this.#to.end();
    }
    return going.length;
  }

  #heldBytes(): number {
    return this.#held.reduce((sum, { length }) => sum + length, 0);
  }
}
