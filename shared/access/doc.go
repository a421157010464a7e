// Package access has the tokens of clients: their scopes, their records and the
// lookup of a token.
//
// A client token is a secret text that a client sends as a bearer token. A record
// of it has the tenant, the project and the scopes that the token authorizes, and
// the SHA-256 of the text. The text is shown once and never stored. A token of
// AUTH_TOKEN has no stored record: it has the scopes of Ordinary in the tenant
// "default".
package access
