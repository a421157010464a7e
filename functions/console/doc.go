// Package console serves the web console below /console/: pages for people, rendered on the
// server. They work without JavaScript.
//
// A page reads and changes everything by operations of the API, with the token of its reader. So
// a page shows exactly what the API would return to that token, and the API alone decides what
// is allowed. README.md says how to add a page.
//
//	browser ──cookie──► console ──token──► API
//	                       │
//	                       └── sessions: a record per browser
//
// # Sessions
//
// A browser signs in with a client token, or with a one-time ticket. Its session is a record of
// the store. The cookie has a random secret. The record has only a digest of the secret and the
// token, sealed with a key that is derived from the secret. So neither the cookie nor the record
// alone contains the token. A session ends with its record, with its token, or after session.SessionLife.
//
// # Selections
//
// Runs that were selected for an action are a record of their tenant. The action changes these runs
// only, by operations of the API, and the record keeps a result for each. It expires after
// SelectionLife.
//
// # Requests that change something
//
// They are POST requests with a form. The console refuses them unless the browser declares that
// they come from its own pages (Sec-Fetch-Site or Origin) and the form has the token of the
// session. No page loads anything from another origin or has a script in itself.
package console
