// Package ui has the elements of the console's pages: markup with texts and addresses that are
// safe, formats of values, the frame of a page, and its style and scripts. It reads nothing.
package ui
