import { From, Handle } from '@isthmus/messaging';
import { type Caller, mcpClient, MountSpec, type Parsed, type ToolReply, WopError } from '@isthmus/protocol';
import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { checkMount } from './mount-check.js';
import { SeamRemote } from './seam-remote.js';
import { SPOKEN, versionUnsupported } from './version-policy.js';

const TIMEOUT_MS = 30_000;

/** The client half of MCP, driven by a suite: a mount that exists for one call. */
@Controller()
export class SeamHandler {
  constructor(private readonly seam: SeamRemote) {}

  @Handle(mcpClient.callEndpoint)
  async call(
    @From() { tenant, workspace }: Caller,
    @Payload() { url, revision, ...call }: Parsed<typeof mcpClient.callEndpoint>,
  ): Promise<ToolReply> {
    const { remote } = this.seam;
    if (!remote) throw new WopError('not_found', 'Test seams are off.');
    const spec = MountSpec.parse({ url, ...(revision !== undefined && { versionPolicy: { allow: [revision] } }) });
    if (!spec.versionPolicy.allow.some((one) => SPOKEN.includes(one))) throw versionUnsupported(spec.versionPolicy, SPOKEN);
    checkMount(spec, (hostname) => remote.egress.refusalOf(hostname));
    const target = { tenant, workspace, serverId: 'seam', spec };
    return remote.tools.call(target, { ...call, repeat: false, startWithinMs: TIMEOUT_MS, timeoutMs: TIMEOUT_MS });
  }
}
