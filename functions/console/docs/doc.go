// Package docs renders the documents of the repository as a site of static pages, grouped by
// reader, with a reference of the API.
//
// A page has no script. Raw HTML of a document is left out. A link leads to a page of the site,
// or to an address with https; the text of any other link remains without it.
package docs
