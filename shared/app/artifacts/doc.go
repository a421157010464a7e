// Package artifacts stores the artifacts of tenants, and the catalog of their models.
//
// An artifact is immutable content with an id that is its digest. A sweep removes it after its
// retention, unless another artifact names it as its parent. A model is a definition that
// operators change; each change is an event. The package imports no other use case.
package artifacts
