package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

// document returns a whole page with its content.
func (l *layout) document(content Node) Node {
	return Doctype(HTML(
		Lang("en"),
		Head(
			Meta(Charset("utf-8")),
			Meta(Name("viewport"), Content("width=device-width, initial-scale=1")),
			Meta(Name("color-scheme"), Content("light dark")),
			TitleEl(Text(l.Title+" · Sortie")),
			Link(Rel("icon"), l.href(asset("icon.svg")), Type("image/svg+xml")),
			Link(Rel("stylesheet"), l.href(asset("style.css"))),
			l.module("console.js"),
		),
		Body(
			If(l.Page != "", Data("page", l.Page)),
			A(Class("skip"), relative("href", "#main"), Text("Skip to the content")),
			icons,
			l.bar(),
			Main(
				ID("main"), If(l.Reader == nil, Class("narrow")), If(l.Live, Data("live", l.RunID)), If(l.Ended, Data("ended", "true")),
				If(l.Done != "", done(l.Done)),
				content,
			),
			l.same(),
		),
	))
}

// module returns a script of the console.
func (l *layout) module(name string) Node {
	return El("script", Type("module"), relative("src", l.Root+asset(name)))
}

// bar returns the navigation for a reader who is signed in.
func (l *layout) bar() Node {
	if l.Reader == nil {
		return nil
	}
	return Header(
		Class("bar"),
		l.a("", Class("brand"), icon("sortie"), Text("Sortie")),
		Nav(Aria("label", "Pages"), Ul(Map(l.Nav, func(item navItem) Node {
			return Li(l.a(item.Path, If(item.Current, Aria("current", "page")), Text(item.Label)))
		}))),
		If(l.Live, Button(
			Type("button"), Class("livedot"), Data("live-dot", "lost"), Aria("pressed", "true"),
			TitleAttr("Pause or continue the live changes of this page"), flag("hidden"), Text("Live"),
		)),
		l.get("search", Class("find"), Role("search"), Aria("label", "Find a run, job, event or webhook"), Input(
			Name("q"), Type("search"), Placeholder("Find by id or name"), Aria("label", "Id or name"), Aria("keyshortcuts", "/"),
		)),
		Details(
			Class("who"), Summary(Span(Text(l.Reader.Tenant)), space(), Small(Text(l.Reader.Name))),
			Div(
				Class("menu"),
				Dl(
					term("Token", Text(l.Reader.Name+" "), code(l.Reader.Subject)),
					term("Tenant, project", Text(l.Reader.Tenant+", "+l.Reader.Project)),
					term("Session ends", l.time(l.Reader.Until)),
				),
				l.post("sign-out", Button(Text("Sign out"))),
			),
		),
	)
}

// same returns the equivalent command, and the link to the same content of the API.
func (l *layout) same() Node {
	if l.Reader == nil || l.JSON == "" && l.Command == "" {
		return nil
	}
	return Footer(
		Class("same"), Aria("label", "The same elsewhere"),
		If(l.Command != "", copied(l.Command)), space(),
		If(l.JSON != "", l.a("json"+l.JSON, Class("quiet"), Text("as JSON"))),
	)
}

// done returns the message that an action was carried out.
func done(message string) Node { return P(Class("done"), Role("status"), icon("check"), Text(message)) }

// warning returns the message that something was refused.
func warning(children ...Node) Node { return P(Class("warn"), Role("alert"), Group(children)) }

func icon(name string) Node {
	return SVG(Class("i"), Aria("hidden", "true"), El("use", relative("href", "#i-"+name)))
}

// icons are the symbols that icon refers to.
var icons = SVG(
	Width("0"), Height("0"), Class("sprite"), Aria("hidden", "true"),
	symbol("sortie", fill("M2 13 14 2.5 10.5 14 7.6 9.6Z")),
	symbol("clock", ring, stroke("M8 4.6V8l2.3 1.5")),
	symbol("half", ring, fill("M8 2a6 6 0 0 1 0 12Z")),
	symbol("play", fill("M4 2.5 13.5 8 4 13.5Z")),
	symbol("stop", El("rect", attr("x", 3), attr("y", 3), Width("10"), Height("10"), attr("rx", "1.5"))),
	symbol("again", stroke("M13.5 8A5.5 5.5 0 1 1 11.6 3.8"), fill("M9.8 5.6h4V1.5Z")),
	symbol("check", bold("m2.5 8.5 3.6 3.6 7.4-8")),
	symbol("cross", bold("m3.5 3.5 9 9m0-9-9 9")),
	symbol("slash", ring, stroke("m4 12 8-8")),
	symbol("question", bold("M5 5.6a3 3 0 1 1 4.4 2.7C8.4 8.900 8 9.3 8 10.4"), El("circle", attr("cx", 8), attr("cy", "13.2"), attr("r", "1.1"))),
	symbol("skip", fill("M2 3.5 7.500 8 2 12.500Zm6 0L13.500 8 8 12.500Z")),
	symbol("pause", fill("M3.500 3h3v10h-3Zm6 0h3v10h-3Z")),
	symbol("check-list", stroke("m2 4.500 1.500 1.500 2.500-3M8.500 4.500H14M2 11l1.500 1.500 2.500-3M8.500 11H14")),
)

var ring = El("circle", attr("cx", 8), attr("cy", 8), attr("r", 6), Class("line"))

func symbol(name string, shapes ...Node) Node {
	return El("symbol", ID("i-"+name), attr("viewBox", "0 0 16 16"), Group(shapes))
}

func fill(path string) Node   { return El("path", attr("d", path)) }
func stroke(path string) Node { return El("path", Class("line"), attr("d", path)) }
func bold(path string) Node   { return El("path", Class("line bold"), attr("d", path)) }
