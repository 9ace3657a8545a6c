import type { BenchApp } from '../support/bench-app.ts';
import { CpuMeter } from '../support/cpu-meter.ts';
import type { WorkerProcess } from '../support/worker-process.ts';
import type { Contender, Track } from './contender.ts';

/** This app: worker processes as `npm run worker` starts them, with several companies. */
export class OurContender implements Contender {
  readonly name = 'app';
  readonly label = 'this app';
  readonly isOurs = true;
  readonly tracks: readonly Track[];
  readonly #app: BenchApp;
  readonly #count: number;
  readonly #cpu = new CpuMeter();
  readonly #instances = new Map<Track, string>();
  #workers: WorkerProcess[] = [];

  constructor(app: BenchApp, tracks: readonly Track[], workers: number) {
    this.#app = app;
    this.tracks = tracks;
    this.#count = workers;
  }

  async prepare(): Promise<void> {
    this.#workers = await this.#start();
  }

  /** The install, which asks whose token it is just before the sync begins. */
  async open(track: Track): Promise<void> {
    const { company, grant } = track;
    this.#instances.set(track, await this.#app.install(company, grant));
    await this.#app.identify(company, grant);
  }

  async go(): Promise<void> {
    for (const { pid } of this.#workers) this.#cpu.watch(pid);
    await Promise.all([...this.#instances.values()].map((id) => this.#app.sync(id)));
  }

  async killAndRestart(): Promise<void> {
    for (const { pid } of this.#workers) this.#cpu.leave(pid);
    await Promise.all(this.#workers.map((worker) => worker.stop('SIGKILL')));
    this.#workers = await this.#start();
    for (const { pid } of this.#workers) this.#cpu.watch(pid);
  }

  cpuMs(): number {
    return this.#cpu.spentMs;
  }

  async end(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.stop('SIGKILL')));
  }

  #start(): Promise<WorkerProcess[]> {
    return Promise.all(Array.from({ length: this.#count }, () => this.#app.startWorker()));
  }
}
