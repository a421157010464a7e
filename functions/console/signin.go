package console

import (
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// pathTicket is the address of the page for a ticket.
const pathTicket = Prefix + "ticket"

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
	next := localPath(r.URL.Query().Get("next"))
	if _, err := c.session(r); err == nil {
		return redirect(w, next)
	} else if !fault.Is(err, fault.Unauthenticated) {
		return err
	}
	setCookie(w, r, cookieSession, "", 0)
	return c.signInPage(w, r, http.StatusOK, signInData{Next: next})
}

func (c *console) signInPage(w http.ResponseWriter, r *http.Request, status int, data signInData) error {
	form, err := c.ensureForm(w, r)
	if err != nil {
		return err
	}
	data.Local = httpkit.CalledOnLoopback(r)
	return c.render(w, status, &layout{Title: "Sign in", Root: rootOf(r), Form: form}, data.content)
}

// signIn opens a session for a client token.
func (c *console) signIn(w http.ResponseWriter, r *http.Request) error {
	next := localPath(r.PostForm.Get("next"))
	opened, err := c.Sessions.create(r.Context(), kindSession, r.PostForm.Get("token"), SessionLife)
	if fault.Is(err, fault.Unauthenticated) {
		return c.signInPage(w, r, http.StatusUnauthorized, signInData{Next: next, Problem: "This token is unknown, was revoked or has expired."})
	}
	if err != nil {
		return err
	}
	return c.enter(w, r, opened, next)
}

// enter gives the browser the cookie of a new session.
func (c *console) enter(w http.ResponseWriter, r *http.Request, opened session, next string) error {
	if earlier, err := c.session(r); err == nil {
		if _, err := c.Sessions.end(r.Context(), earlier); err != nil {
			return err
		}
	}
	httpkit.Identify(r.Context(), opened.identity())
	setCookie(w, r, cookieSession, opened.key, opened.until.Sub(c.Clock.Now()))
	setCookie(w, r, cookieForm, "", 0)
	return redirect(w, next)
}

// signOut ends the session.
func (c *console) signOut(w http.ResponseWriter, r *http.Request) error {
	opened, err := c.session(r)
	switch {
	case err == nil:
		httpkit.Identify(r.Context(), opened.identity())
		if _, err := c.Sessions.end(r.Context(), opened); err != nil {
			return err
		}
	case !fault.Is(err, fault.Unauthenticated):
		return err
	}
	setCookie(w, r, cookieSession, "", 0)
	return redirect(w, pathSignIn)
}

// session returns the session of the browser. It returns errSignedOut without one.
func (c *console) session(r *http.Request) (session, error) {
	key := cookie(r, cookieSession)
	if key == "" {
		return session{}, errSignedOut
	}
	return c.Sessions.open(r.Context(), kindSession, key)
}

// createTicket returns the address of a page that signs a browser in, once, with the token of the
// request. It is for a command that opens a browser.
func (c *console) createTicket(w http.ResponseWriter, r *http.Request) error {
	protect(w.Header())
	text, _ := httpkit.BearerToken(r)
	if text == "" {
		return fault.New(fault.Unauthenticated, "missing token, want Authorization: Bearer")
	}
	ticket, err := c.Sessions.create(r.Context(), kindTicket, text, TicketLife)
	if err != nil {
		return err
	}
	httpkit.Identify(r.Context(), ticket.identity())
	return httpkit.WriteJSON(w, http.StatusCreated, contract.ConsoleTicket{Path: TicketPath(ticket.key), ExpiresAt: ticket.until.Truncate(time.Second)})
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
	t, err := c.Sessions.open(r.Context(), kindTicket, key)
	if fault.Is(err, fault.Unauthenticated) {
		return c.usedTicket(w, r)
	}
	if err != nil {
		return err
	}
	form := formToken(r)
	if form == "" {
		if form, err = c.ensureForm(w, r); err != nil {
			return err
		}
	}
	data := ticketData{Ticket: key, Tenant: t.token.Tenant, Project: t.token.Project, Subject: t.token.Subject(), Name: t.token.Name, Until: t.until}
	return c.render(w, http.StatusOK, &layout{Title: "Sign in", Root: rootOf(r), Form: form}, data.content)
}

// useTicket consumes a ticket and opens a session.
func (c *console) useTicket(w http.ResponseWriter, r *http.Request) error {
	t, err := c.Sessions.open(r.Context(), kindTicket, r.PostForm.Get("ticket"))
	if fault.Is(err, fault.Unauthenticated) {
		return c.usedTicket(w, r)
	}
	if err != nil {
		return err
	}
	first, err := c.Sessions.end(r.Context(), t)
	if err != nil {
		return err
	}
	if !first {
		return c.usedTicket(w, r)
	}
	opened, err := c.Sessions.create(r.Context(), kindSession, t.text, SessionLife)
	if err != nil {
		return err
	}
	return c.enter(w, r, opened, home)
}

func (c *console) usedTicket(w http.ResponseWriter, r *http.Request) error {
	return c.render(w, http.StatusGone, &layout{Title: "Link used", Root: rootOf(r)}, usedTicket)
}
