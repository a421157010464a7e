// Package archtest holds the rules about this repository: who may import whom,
// what is documented, which names have to agree. It has tests only. Each names
// the rule and the place that breaks it.
package archtest
