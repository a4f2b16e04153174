/** Applies what is missing, then lets the service roles log in. */
export declare function deploy(adminUrl: string): Promise<string[]>;
export declare function drift(adminUrl: string): Promise<{ exitCode: number; stdout: string }>;
