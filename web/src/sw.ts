// After the first visit the page works without a network: all its files are kept, and renewed as one.
const scope = self as unknown as ServiceWorkerGlobalScope;
declare const FILES: string[];
declare const NAME: string;

scope.addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(FILES)).then(() => scope.skipWaiting()));
});
scope.addEventListener("activate", (event) => {
  const old = async () => {
    for (const name of await caches.keys()) if (name !== NAME && name.startsWith("penstock-")) await caches.delete(name);
    await scope.clients.claim();
  };
  event.waitUntil(old());
});
scope.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== scope.location.origin || url.pathname.includes("/api/")) return;
  event.respondWith(
    caches.open(NAME).then(async (cache) => (await cache.match(event.request, { ignoreSearch: true })) ?? fetch(event.request)),
  );
});
