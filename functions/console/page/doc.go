// Package page says what a page of the console is. A Page reads the API by its Visit, with the token of its
// reader, and returns a View. The package also has what several pages read: runs, queries and
// the errors of the API.
package page
