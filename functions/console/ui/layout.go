package ui

import (
	"time"

	"maragu.dev/gomponents"

	"github.com/sortie-dev/sortie/shared/domain/access"
)

// Markup returns the content of a page.
type Markup func(*Layout) gomponents.Node

// Layout is what all pages show, and what their markup needs.
type Layout struct {
	Title string
	// Root is the relative path of the console: "" or "../" for each further segment.
	Root string
	// Form is the token that each form needs.
	Form string
	// Page is the name of the page. Here is its path and query below the console.
	Page, Here string
	Nav        []NavItem
	// Reader is the reader; nil if not signed in.
	Reader *Reader
	// JSON is the path of the API's representation, and Command the equivalent command.
	JSON, Command string
	// Live: the page changes while it is open, with the run RunID, or with any. Ended: the run
	// has ended.
	Live, Ended bool
	RunID       string
	// Done names the action that led to this page; empty without one.
	Done string
	Now  time.Time

	// Permits reports whether the reader has a scope; nil means no scope.
	Permits func(access.Scope) bool
}

// NavItem is a page in the navigation.
type NavItem struct {
	Label, Path string
	Current     bool
}

// Reader is who is signed in.
type Reader struct {
	Name, Subject, Tenant, Project string
	Until                          time.Time
}

// May reports whether the reader has a scope.
func (l *Layout) May(s access.Scope) bool { return l.Permits != nil && l.Permits(s) }
