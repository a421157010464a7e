// Package archtest checks rules of this repository: permitted imports, required comments,
// names that must match. It contains only tests. A failure names the rule and the file that
// violates it.
package archtest
