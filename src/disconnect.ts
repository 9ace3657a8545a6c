import { parseArgs } from 'node:util';
import { boot } from './boot.ts';
import { INTERRUPTED_CODE } from './runtime/shutdown.ts';
import { InstanceStore } from './store/instances.ts';
import { openExistingDatabase } from './store/open-database.ts';
import { RecordStore } from './store/records.ts';
import { TokenStore } from './store/tokens.ts';

const USAGE =
  'npm run disconnect -- INSTANCE_ID [--delete-data], with the id that /ops shows, and the address of its dashboard.';

/** Which instance, and whether its copy goes, too; else the process ends with a plain sentence. */
function readArguments(): { id: string; deleteData: boolean } {
  try {
    const options = { 'delete-data': { type: 'boolean', default: false } } as const;
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const [id, ...others] = positionals;
    if (!id || others.length > 0) throw new Error('Name one instance, and no more.');
    // Without the two dashes npm takes it for a setting of its own.
    if (process.env.npm_config_delete_data !== undefined) throw new Error('npm has kept --delete-data.');
    return { id, deleteData: values['delete-data'] };
  } catch (error) {
    process.stderr.write(`${(error as Error).message} Nothing was done. ${USAGE}\n`);
    process.exit(2);
  }
}

// For companies that no browser sees any more: what an administrator does on the dashboard, by whoever runs the app.
const { id, deleteData } = readArguments();
await boot(
  async ({ config, shutdown }) => {
    const db = await openExistingDatabase(config.databaseUrl);
    shutdown.add('database', () => db.destroy());
    const instance = await new InstanceStore(db).find(id);
    if (instance === undefined) {
      throw new Error(
        `There is no instance ${id} in ${config.databaseUrl}: /ops shows them. Nothing was done.`,
      );
    }
    // The service's words: a terminal takes what no letter is for a command.
    const name = instance.name.replaceAll(/\p{C}/gu, '?');
    let isUnderWay = true;
    shutdown.add('work', () => isUnderWay && process.stderr.write('Broken off: run it again.\n'));
    process.stdout.write(`Disconnecting ${name} (${id}) of ${config.databaseUrl}.\n`);
    await new TokenStore(db).disconnect(id, { deleteData }).catch((cause: unknown) => {
      isUnderWay = false;
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`It is not disconnected, and has to be once more: ${why}`, { cause });
    });
    process.stdout.write('It is disconnected, and its tokens are deleted.\n');
    if (deleteData) {
      await new RecordStore(db).finishRemoval(id);
      process.stdout.write('Its copied data is deleted.\n');
    }
    isUnderWay = false;
    await shutdown.stop('the work is over', 0);
  },
  { takesArguments: true, signalCode: INTERRUPTED_CODE },
);
