package ui

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

// Document returns a whole page with its content.
func (l *Layout) Document(content Node) Node {
	return Doctype(HTML(
		Lang("en"),
		Head(
			Meta(Charset("utf-8")),
			Meta(Name("viewport"), Content("width=device-width, initial-scale=1")),
			Meta(Name("color-scheme"), Content("light dark")),
			TitleEl(Text(l.Title+" · Sortie")),
			Link(Rel("icon"), l.href(asset("icon.svg")), Type("image/svg+xml")),
			Link(Rel("stylesheet"), l.href(asset("style.css"))),
			l.Module("console.js"),
		),
		Body(
			If(l.Page != "", Data("page", l.Page)),
			A(Class("skip"), Relative("href", "#main"), Text("Skip to the content")),
			icons,
			l.bar(),
			Main(
				ID("main"), If(l.Reader == nil, Class("narrow")), If(l.Live, Data("live", l.RunID)), If(l.Ended, Data("ended", "true")),
				If(l.Done != "", Done(l.Done)),
				content,
			),
			l.same(),
		),
	))
}

// Module returns a script of the console.
func (l *Layout) Module(name string) Node {
	return El("script", Type("module"), Relative("src", l.Root+asset(name)))
}

// bar returns the navigation for a reader who is signed in.
func (l *Layout) bar() Node {
	if l.Reader == nil {
		return nil
	}
	return Header(
		Class("bar"),
		l.A("", Class("brand"), Icon("sortie"), Text("Sortie")),
		Nav(Aria("label", "Pages"), Ul(Map(l.Nav, func(item NavItem) Node {
			return Li(l.A(item.Path, If(item.Current, Aria("current", "page")), Text(item.Label)))
		}))),
		If(l.Live, Button(
			Type("button"), Class("livedot"), Data("live-dot", "lost"), Aria("pressed", "true"),
			TitleAttr("Pause or continue the live changes of this page"), Flag("hidden"), Text("Live"),
		)),
		l.Get("search", Class("find"), Role("search"), Aria("label", "Find a run, job, event or webhook"), Input(
			Name("q"), Type("search"), Placeholder("Find by id or name"), Aria("label", "Id or name"), Aria("keyshortcuts", "/"),
		)),
		Details(
			Class("who"), Summary(Span(Text(l.Reader.Tenant)), Space(), Small(Text(l.Reader.Name))),
			Div(
				Class("menu"),
				Dl(
					Term("Token", Text(l.Reader.Name+" "), Mono(l.Reader.Subject)),
					Term("Tenant, project", Text(l.Reader.Tenant+", "+l.Reader.Project)),
					Term("Session ends", l.Time(l.Reader.Until)),
				),
				l.Post("sign-out", Button(Text("Sign out"))),
			),
		),
	)
}

// same returns the equivalent command, and the link to the same content of the API.
func (l *Layout) same() Node {
	if l.Reader == nil || l.JSON == "" && l.Command == "" {
		return nil
	}
	return Footer(
		Class("same"), Aria("label", "The same elsewhere"),
		If(l.Command != "", Copied(l.Command)), Space(),
		If(l.JSON != "", l.A("json"+l.JSON, Class("quiet"), Text("as JSON"))),
	)
}

// Done returns the message that an action was carried out.
func Done(message string) Node { return P(Class("done"), Role("status"), Icon("check"), Text(message)) }

// Warning returns the message that something was refused.
func Warning(children ...Node) Node { return P(Class("warn"), Role("alert"), Group(children)) }

// Icon returns a symbol, which screen readers leave out.
func Icon(name string) Node {
	return SVG(Class("i"), Aria("hidden", "true"), El("use", Relative("href", "#i-"+name)))
}

// icons are the symbols that icon refers to.
var icons = SVG(
	Width("0"), Height("0"), Class("sprite"), Aria("hidden", "true"),
	symbol("sortie", fill("M2 13 14 2.5 10.5 14 7.6 9.6Z")),
	symbol("clock", ring, stroke("M8 4.6V8l2.3 1.5")),
	symbol("half", ring, fill("M8 2a6 6 0 0 1 0 12Z")),
	symbol("play", fill("M4 2.5 13.5 8 4 13.5Z")),
	symbol("stop", El("rect", Attribute("x", 3), Attribute("y", 3), Width("10"), Height("10"), Attribute("rx", "1.5"))),
	symbol("again", stroke("M13.5 8A5.5 5.5 0 1 1 11.6 3.8"), fill("M9.8 5.6h4V1.5Z")),
	symbol("check", bold("m2.5 8.5 3.6 3.6 7.4-8")),
	symbol("cross", bold("m3.5 3.5 9 9m0-9-9 9")),
	symbol("slash", ring, stroke("m4 12 8-8")),
	symbol("question", bold("M5 5.6a3 3 0 1 1 4.4 2.7C8.4 8.900 8 9.3 8 10.4"), El("circle", Attribute("cx", 8), Attribute("cy", "13.2"), Attribute("r", "1.1"))),
	symbol("skip", fill("M2 3.5 7.500 8 2 12.500Zm6 0L13.500 8 8 12.500Z")),
	symbol("pause", fill("M3.500 3h3v10h-3Zm6 0h3v10h-3Z")),
	symbol("check-list", stroke("m2 4.500 1.500 1.500 2.500-3M8.500 4.500H14M2 11l1.500 1.500 2.500-3M8.500 11H14")),
)

var ring = El("circle", Attribute("cx", 8), Attribute("cy", 8), Attribute("r", 6), Class("line"))

func symbol(name string, shapes ...Node) Node {
	return El("symbol", ID("i-"+name), Attribute("viewBox", "0 0 16 16"), Group(shapes))
}

func fill(path string) Node   { return El("path", Attribute("d", path)) }
func stroke(path string) Node { return El("path", Class("line"), Attribute("d", path)) }
func bold(path string) Node   { return El("path", Class("line bold"), Attribute("d", path)) }
