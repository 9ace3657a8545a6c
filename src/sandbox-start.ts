import './config/env-file.ts';
import { APP_INFO } from './integration/app-info.ts';

// `npm run sandbox`: the consent page calls the app by the fork's name. The package has no fork.
process.argv.splice(2, 0, '--application-name', APP_INFO.name);
await import('./sandbox/main.ts');
