import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** An answer, as it came. */
export interface Answer {
  head: string;
  body: Buffer;
}

/** Answers on one connection, one after the other; no more of HTTP than the walkers need, so that they cost little. */
export class Connection {
  readonly #socket: Socket;
  #received: Buffer[] = [];
  #size = 0;
  #needed = 0;
  #headEnd = 0;
  #settle: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;

  constructor(socket: Socket) {
    this.#socket = socket.setNoDelay(true);
    socket.on('data', (bytes) => this.#take(bytes));
    socket.on('error', (error) => this.#settle?.reject(error));
    socket.on('close', () => this.#settle?.reject(new Error('the sandbox closed the connection')));
  }

  /** Asks for a page; the answer before must have come. Rejects when the connection ends instead. */
  get({ host, pathname, search }: URL, token: string): Promise<Answer> {
    this.#socket.write(
      `GET ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n\r\n`,
    );
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
  }

  end(): void {
    this.#settle = undefined;
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    this.#received.push(bytes);
    this.#size += bytes.length;
    if (this.#needed === 0) this.#readHead();
    if (this.#needed === 0 || this.#size < this.#needed) return;
    const all = this.#received.length === 1 ? bytes : Buffer.concat(this.#received);
    const answer = { head: all.toString('latin1', 0, this.#headEnd), body: all.subarray(this.#headEnd + 4) };
    this.#received = [];
    this.#size = 0;
    this.#needed = 0;
    this.#settle?.resolve(answer);
  }

  #readHead(): void {
    const all = this.#received.length === 1 ? this.#received[0] : Buffer.concat(this.#received);
    const end = all?.indexOf('\r\n\r\n') ?? -1;
    if (all === undefined || end < 0) return;
    const length = /content-length: (\d+)/i.exec(all.toString('latin1', 0, end))?.[1];
    if (length === undefined) throw new Error('an answer without content-length');
    this.#headEnd = end;
    this.#needed = end + 4 + Number(length);
  }
}

/** Opens a connection to where the URL leads. */
export async function connectTo(url: URL): Promise<Connection> {
  const socket = connect(Number(url.port), url.hostname);
  await once(socket, 'connect');
  return new Connection(socket);
}
