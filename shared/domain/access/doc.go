// Package access defines the tokens of clients: scopes, records and the lookup of a
// token.
//
// A client token is a secret text that a client sends as a bearer token. Its record
// contains the tenant, the project, the scopes and the SHA-256 of the text. The text
// is shown once and never stored. A token of AUTH_TOKEN has no stored record. It has
// the scopes of Ordinary in the tenant "default".
package access
