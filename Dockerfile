# One image for three commands: npm run web (the default), npm run worker, npm run migrate.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY docs/operations.md ./docs/
COPY src ./src
COPY jobs ./jobs
COPY views ./views
USER node
EXPOSE 3000
# A worker answers on its WORKER_PORT, the web process on its PORT.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "const { WORKER_PORT, PORT = 3000 } = process.env; fetch(`http://127.0.0.1:${WORKER_PORT || PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["npm", "run", "web"]
