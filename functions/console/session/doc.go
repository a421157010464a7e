// Package session has the sessions of browsers: their records in the store, the tickets that open
// them, the cookies, and the tokens of forms.
package session
