import { BaseConfig } from '@isthmus/chassis';
import { z } from 'zod';

export const Config = BaseConfig.extend({ DATABASE_URL: z.string().min(1) });
export type Config = z.infer<typeof Config>;
