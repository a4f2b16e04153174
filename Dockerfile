# One image for every service: the command says which (see docker-compose.yml).
FROM node:24-bookworm-slim AS build
WORKDIR /src
ENV NX_DAEMON=false NX_NO_CLOUD=true

# The manifests first: the install is repeated only when one of them changes.
COPY package.json package-lock.json .npmrc ./
COPY apps/authz/package.json apps/authz/
COPY apps/engine/package.json apps/engine/
COPY apps/gateway/package.json apps/gateway/
COPY apps/mcp-client/package.json apps/mcp-client/
COPY apps/mcp-server/package.json apps/mcp-server/
COPY e2e/package.json e2e/
COPY libs/chassis/package.json libs/chassis/
COPY libs/db/package.json libs/db/
COPY libs/egress/package.json libs/egress/
COPY libs/messaging/package.json libs/messaging/
COPY libs/protocol/package.json libs/protocol/
COPY libs/schemas/package.json libs/schemas/
COPY libs/testing/package.json libs/testing/
RUN npm ci --include=dev

COPY . .
RUN npm run generate && npm run build && node docker/prune.mjs

FROM node:24-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production
COPY --from=build /src/package.json ./
COPY --from=build /src/node_modules ./node_modules
COPY --from=build /src/apps ./apps
COPY --from=build /src/libs ./libs
COPY --from=build /src/prisma ./prisma
COPY --from=build /src/tools ./tools
COPY --from=build /src/docker ./docker
RUN mkdir /keys && chown node:node /keys
USER node
ENTRYPOINT ["node", "--import", "./libs/chassis/dist/otel.js"]
CMD ["apps/gateway/dist/main.js"]
