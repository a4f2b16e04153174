import 'reflect-metadata';
import { loadConfig, startService } from '@isthmus/chassis';
import { EngineModule } from './app.module.js';
import { Config } from './config.js';

const config = loadConfig(Config);
await startService({ config, module: EngineModule.forRoot(config) });
