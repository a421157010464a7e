// Package deployed has, one folder each, the adapters of a deployed Sortie as its
// functions wire them: each reads its variables from the process, and makes no
// call.
//
// They stand apart so that a function links the SDKs of what it uses, and no
// other.
package deployed
