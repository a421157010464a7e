package console

import (
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// pathTicket is the address of the page for a ticket.
const pathTicket = page.Prefix + "ticket"

// signInData is the content of the page for the sign-in.
type signInData struct {
	Next    string
	Problem string
	// Local: the console is on the reader's own computer.
	Local bool
}

// showSignIn shows the form for a token. A browser that is signed in goes to the page that it
// wants.
func (c *console) showSignIn(w http.ResponseWriter, r *http.Request) error {
	next := page.LocalPath(r.URL.Query().Get("next"))
	if _, err := c.session(r); err == nil {
		return redirect(w, next)
	} else if !fault.Is(err, fault.Unauthenticated) {
		return err
	}
	session.SetCookie(w, r, session.CookieSession, "", 0)
	return c.signInPage(w, r, http.StatusOK, signInData{Next: next})
}

func (c *console) signInPage(w http.ResponseWriter, r *http.Request, status int, data signInData) error {
	form, err := c.Sessions.EnsureForm(w, r)
	if err != nil {
		return err
	}
	data.Local = httpkit.CalledOnLoopback(r)
	return c.render(w, status, &ui.Layout{Title: "Sign in", Root: page.RootOf(r), Form: form}, data.content)
}

// signIn opens a session for a client token.
func (c *console) signIn(w http.ResponseWriter, r *http.Request) error {
	next := page.LocalPath(r.PostForm.Get("next"))
	opened, err := c.Sessions.Create(r.Context(), session.KindSession, r.PostForm.Get("token"), session.SessionLife)
	if fault.Is(err, fault.Unauthenticated) {
		return c.signInPage(w, r, http.StatusUnauthorized, signInData{Next: next, Problem: "This token is unknown, was revoked or has expired."})
	}
	if err != nil {
		return err
	}
	return c.enter(w, r, opened, next)
}

// enter gives the browser the cookie of a new session.
func (c *console) enter(w http.ResponseWriter, r *http.Request, opened session.Session, next string) error {
	if earlier, err := c.session(r); err == nil {
		if _, err := c.Sessions.End(r.Context(), earlier); err != nil {
			return err
		}
	}
	httpkit.Identify(r.Context(), opened.Identity())
	session.SetCookie(w, r, session.CookieSession, opened.Key, opened.Until.Sub(c.Clock.Now()))
	session.SetCookie(w, r, session.CookieForm, "", 0)
	return redirect(w, next)
}

// signOut ends the session.
func (c *console) signOut(w http.ResponseWriter, r *http.Request) error {
	opened, err := c.session(r)
	switch {
	case err == nil:
		httpkit.Identify(r.Context(), opened.Identity())
		if _, err := c.Sessions.End(r.Context(), opened); err != nil {
			return err
		}
	case !fault.Is(err, fault.Unauthenticated):
		return err
	}
	session.SetCookie(w, r, session.CookieSession, "", 0)
	return redirect(w, page.PathSignIn)
}

// session returns the session of the browser. It returns errSignedOut without one.
func (c *console) session(r *http.Request) (session.Session, error) {
	key := session.Cookie(r, session.CookieSession)
	if key == "" {
		return session.Session{}, session.ErrSignedOut
	}
	return c.Sessions.Open(r.Context(), session.KindSession, key)
}

// createTicket returns the address of a page that signs a browser in, once, with the token of the
// request. It is for a command that opens a browser.
func (c *console) createTicket(w http.ResponseWriter, r *http.Request) error {
	protect(w.Header())
	text, _ := httpkit.BearerToken(r)
	if text == "" {
		return fault.New(fault.Unauthenticated, "missing token, want Authorization: Bearer")
	}
	ticket, err := c.Sessions.Create(r.Context(), session.KindTicket, text, session.TicketLife)
	if err != nil {
		return err
	}
	httpkit.Identify(r.Context(), ticket.Identity())
	return httpkit.WriteJSON(w, http.StatusCreated, contract.ConsoleTicket{Path: TicketPath(ticket.Key), ExpiresAt: ticket.Until.Truncate(time.Second)})
}

// TicketPath returns the path of the page for a ticket.
func TicketPath(ticket string) string {
	return pathTicket + "?" + url.Values{"ticket": {ticket}}.Encode()
}

// ticketData is the content of the page for a ticket.
type ticketData struct {
	Ticket, Tenant, Project, Subject, Name string
	Until                                  time.Time
}

// showTicket shows whose ticket it is, and a button. Programs that preview links do not press it.
func (c *console) showTicket(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Referrer-Policy", "strict-origin") // the address of this page has the ticket
	key := r.URL.Query().Get("ticket")
	t, err := c.Sessions.Open(r.Context(), session.KindTicket, key)
	if fault.Is(err, fault.Unauthenticated) {
		return c.usedTicket(w, r)
	}
	if err != nil {
		return err
	}
	form := session.FormToken(r)
	if form == "" {
		if form, err = c.Sessions.EnsureForm(w, r); err != nil {
			return err
		}
	}
	data := ticketData{Ticket: key, Tenant: t.Token.Tenant, Project: t.Token.Project, Subject: t.Token.Subject(), Name: t.Token.Name, Until: t.Until}
	return c.render(w, http.StatusOK, &ui.Layout{Title: "Sign in", Root: page.RootOf(r), Form: form}, data.content)
}

// useTicket consumes a ticket and opens a session.
func (c *console) useTicket(w http.ResponseWriter, r *http.Request) error {
	t, err := c.Sessions.Open(r.Context(), session.KindTicket, r.PostForm.Get("ticket"))
	if fault.Is(err, fault.Unauthenticated) {
		return c.usedTicket(w, r)
	}
	if err != nil {
		return err
	}
	first, err := c.Sessions.End(r.Context(), t)
	if err != nil {
		return err
	}
	if !first {
		return c.usedTicket(w, r)
	}
	opened, err := c.Sessions.Create(r.Context(), session.KindSession, t.Text, session.SessionLife)
	if err != nil {
		return err
	}
	return c.enter(w, r, opened, page.Home)
}

func (c *console) usedTicket(w http.ResponseWriter, r *http.Request) error {
	return c.render(w, http.StatusGone, &ui.Layout{Title: "Link used", Root: page.RootOf(r)}, usedTicket)
}
