import { loadConfig, startService } from '@isthmus/chassis';
import { AppModule } from './app.module.js';
import { Config } from './config.js';

const config = loadConfig(Config);
await startService({ config, module: AppModule.forRoot(config) });
