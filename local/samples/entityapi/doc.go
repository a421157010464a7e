// Package entityapi serves a collection of archive entities as Arke's entity
// API, version 0, does: manifests by persistent identifier (PI), bytes by
// content identifier (CID).
//
//	GET /                                    the service and its health
//	GET /arke                                the root entity; its children are the roots of the collection
//	GET /entities?limit=1..1000&cursor=      {entities:[{pi,tip}], limit, next_cursor}
//	GET /entities/{pi}                       the manifest, its links as CID strings
//	GET /entities/{pi}/versions?limit&cursor {items:[{ver,cid,ts,note?}], next_cursor}, newest first
//	GET /entities/{pi}/versions/{selector}   ver:N or cid:CID
//	GET /resolve/{pi}                        {pi, tip}
//	GET /cat/{cid}                           bytes; immutable, X-IPFS-CID
//
// Errors are {"error": CODE, "message", "details"}, with the codes and status
// numbers of that API. HEAD works wherever GET does; everything else is refused,
// for the API is read only here.
//
// It promises that a CID is true: it names the bytes that /cat serves under it,
// unless a Source says otherwise on purpose. Manifests are DAG-CBOR nodes, which
// /cat serves too. It holds no bytes: all are computed when they are asked for.
// The first /cat whose manifest was not read lately builds an index of 16 bytes
// for each thing that has a CID, which takes about 80 us an entity.
package entityapi
