/**
 * Text that looks like a credential, whoever issued it: API keys (ours too), JWTs, cloud and forge tokens, bearer headers, and the
 * password inside a URL. Such text is never echoed and never logged. Each shape starts at one place of a word, so that hostile
 * text is read once. (rulings, "Wire")
 */
const SHAPES: readonly RegExp[] = [
  /(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{3,}/g,
  /(?<![A-Za-z0-9])isk_[A-Za-z0-9_-]{3,}/g,
  /(?<![A-Za-z0-9_-])ey[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*/g,
  /(?<![A-Za-z0-9])AKIA[A-Z0-9]{16}/g,
  /(?<![A-Za-z0-9])gh[a-z]_[A-Za-z0-9]{3,}/g,
  /(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{3,}/g,
  /(?<![A-Za-z0-9])bearer\s+[^\s"',;]+/gi,
  /(?<=[a-z]:\/\/[^/\s:@]{0,256}:)[^@/\s]+(?=@)/gi,
];

export const MASK = '[redacted]';

/** `text` with every credential-shaped part masked. */
export const maskCredentials = (text: string): string => SHAPES.reduce((masked, shape) => masked.replace(shape, MASK), text);

export const looksLikeCredential = (text: string): boolean => maskCredentials(text) !== text;
