import { BaseConfig, SeamSwitch } from '@isthmus/chassis';
import { type Cidr, parseCidrs } from '@isthmus/egress';
import { z } from 'zod';

const cidrs = z.string().transform((text, context): readonly Cidr[] => {
  const parsed = parseCidrs(text);
  if (parsed) return parsed;
  context.addIssue({ code: 'custom', message: 'must be CIDRs such as 10.0.0.0/8,fd00::/8' });
  return z.NEVER;
});

export const Config = BaseConfig.extend({
  DATABASE_URL: z.string().min(1),
  /** Networks that may be called although they are not public, comma separated. Empty: the public internet only. */
  EGRESS_ALLOW: cidrs.prefault(''),
  /** For mounts that do not say: may a call of unknown outcome be sent again? */
  REPEAT_UNKNOWN: z.enum(['never', 'hinted', 'always']).optional(),
  /** A larger answer of a remote server is refused: it would not fit into a message between services. */
  MAX_RESULT_BYTES: z.coerce
    .number()
    .int()
    .min(1_024)
    .max(480 * 1_024)
    .default(400 * 1_024),
  CONFORMANCE: z.enum(['true', 'false']).default('false'),
  OPENWOP_TEST_SEAM_ENABLED: SeamSwitch,
});
export type Config = z.infer<typeof Config>;

/** A server's own word that it may be called twice is believed by default only where the whole host is a test. (rulings, "MCP client") */
export const repeatUnknownOf = (config: Config): 'never' | 'hinted' | 'always' =>
  config.REPEAT_UNKNOWN ?? (config.CONFORMANCE === 'true' ? 'hinted' : 'never');
