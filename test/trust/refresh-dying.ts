import { Redis } from 'ioredis';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { loadConfig } from '../../src/config.ts';
import { CALLBACK_PATH } from '../../src/contract/routes.ts';
import { FileLocks } from '../../src/runtime/file-locks.ts';
import type { Database } from '../../src/store/database.ts';
import { dirBeside } from '../../src/store/existing-file.ts';
import { InstanceStore } from '../../src/store/instances.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { RedisLock } from '../../src/tokens/lock.ts';
import { OAuthClient } from '../../src/tokens/oauth-client.ts';
import { RefreshPauses } from '../../src/tokens/refresh-pauses.ts';
import { Tokens } from '../../src/tokens/tokens.ts';
import { Vault } from '../../src/tokens/vault.ts';

/** The steps of a refresh, in their order, at which the process may be made to die. */
export type DyingStep = 'asking' | 'answer lost' | 'answered' | 'written' | 'committed' | 'released';

// A process of the app that refreshes the tokens of one instance, and kills itself at a step of that.
const [, , instanceId = '', lastStep = ''] = process.argv;

function dieAt(step: DyingStep): void {
  if (step === lastStep) process.kill(process.pid, 'SIGKILL');
}

class DyingOAuthClient extends OAuthClient {
  override async refresh(refreshToken: string) {
    dieAt('asking');
    const grant = await super.refresh(refreshToken).catch((error: unknown) => {
      dieAt('answer lost');
      throw error;
    });
    dieAt('answered');
    return grant;
  }
}

let isReplacing = false;

class DyingTokenStore extends TokenStore {
  override async replace(...args: Parameters<TokenStore['replace']>) {
    isReplacing = true;
    const written = await super.replace(...args);
    dieAt('committed');
    return written;
  }
}

class DyingLock extends RedisLock {
  override async hold<T>(key: string, holdMs: number, work: () => Promise<T>) {
    const result = await super.hold(key, holdMs, work);
    dieAt('released');
    return result;
  }
}

/** The same database, whose transactions can die between their last statement and their commit. */
function dying(db: Database): Database {
  const durably: Database['durably'] = (work) =>
    db.durably(async (transaction) => {
      const result = await work(transaction);
      // That a grant could be kept is tried before it is asked for.
      if (isReplacing) dieAt('written');
      return result;
    });
  return new Proxy(db, {
    get(target, name) {
      if (name === 'durably') return durably;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

const config = loadConfig(process.env);
const db = await openDatabase(config.databaseUrl);
const redis = new Redis(config.redisUrl ?? '');
const clock = new ServiceClock();
const redirectUri = config.publicUrl + CALLBACK_PATH;
const tokens = new Tokens({
  oauth: new DyingOAuthClient({ ...config.service, redirectUri, clock }),
  store: new DyingTokenStore(dying(db)),
  instances: new InstanceStore(db),
  vault: new Vault(config.tokenKeys),
  lock: new DyingLock(redis),
  hostLocks: new FileLocks(dirBeside(config.databaseUrl, 'refreshes')),
  pauses: new RefreshPauses(redis),
  clock,
});
await tokens.rotate(instanceId);
process.stdout.write('it lives\n');
process.exit(0);
