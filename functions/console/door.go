package console

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// policy is the Content-Security-Policy of all pages: only the console's own files, no script or
// style in a page, no frame.
const policy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// protect sets the headers that each response of the console has.
func protect(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// The cookies. A browser sends the cookies of a host to all of its ports, so the names of cookies
// contain the port.
const (
	cookieSession = "sortie_console"
	cookieForm    = "sortie_form" // the secret of forms before the sign-in
)

func cookieName(name string, r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		return name + "_" + port
	}
	return name
}

// setCookie sets a cookie for the console; an empty value removes it. The cookie has no path, so
// it is sent to the folder of the present address: the console, below the path of a stage.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, life time.Duration) {
	age := int(life.Seconds())
	if value == "" {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // G124: it is Secure but on loopback, where it would be lost
		Name: cookieName(name, r), Value: value, MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !httpkit.CalledOnLoopback(r),
	})
}

// cookie returns the value of the only cookie with a name; empty without one.
func cookie(r *http.Request, name string) string {
	all := r.CookiesNamed(cookieName(name, r))
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// formLimit is the largest size of a form in bytes. A field has a job document at most.
const formLimit = 1 << 20

// fieldToken is the field of a form with the token of the session.
const fieldToken = "form"

// checkForm refuses a form that does not come from the console's own pages, and parses it.
func (c *console) checkForm(w http.ResponseWriter, r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		return fault.New(fault.Forbidden, "the request does not say which page it comes from")
	}
	if err := c.guard.Check(r); err != nil || origin == "null" {
		return fault.New(fault.Forbidden, "the request comes from a page of another site")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return fault.New(fault.Forbidden, "the request is not a form")
	}
	r.Body = http.MaxBytesReader(w, r.Body, formLimit)
	if err := r.ParseForm(); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return fault.New(fault.TooLarge, "the form has more than %d bytes", formLimit)
		}
		return fault.Invalid("", "malformed form")
	}
	want := formToken(r)
	if want == "" {
		return fault.New(fault.Forbidden, "the browser sent no cookie with the form; it keeps the cookie only with HTTPS, or for an address of this computer")
	}
	if got := r.PostForm[fieldToken]; len(got) != 1 || subtle.ConstantTimeCompare([]byte(got[0]), []byte(want)) != 1 {
		return fault.New(fault.Forbidden, "the form is from an earlier session; open its page again")
	}
	return nil
}

// formToken returns the token that the forms of a browser have; empty if it has no cookie.
func formToken(r *http.Request) string {
	secret := cookie(r, cookieSession)
	if secret == "" {
		secret = cookie(r, cookieForm)
	}
	return tokenOf(secret)
}

func tokenOf(secret string) string {
	if secret == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(derived([]byte(secret), "form"))
}

// ensureForm returns the token of forms for a browser that is not signed in. It sets the cookie
// that the token needs.
func (c *console) ensureForm(w http.ResponseWriter, r *http.Request) (string, error) {
	if text := tokenOf(cookie(r, cookieForm)); text != "" {
		return text, nil
	}
	secret := make([]byte, 24)
	if _, err := io.ReadFull(c.Sessions.random, secret); err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(secret)
	setCookie(w, r, cookieForm, text, time.Hour)
	return tokenOf(text), nil
}

// localPath returns a path of the console from a query or a form, or the home page if the text is
// another address.
func localPath(text string) string {
	u, err := url.Parse(text)
	clean := err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && u.Opaque == "" && strings.HasPrefix(u.Path, Prefix) &&
		!strings.ContainsAny(text, "\\\r\n\t") && !strings.Contains(u.Path, "//") && !strings.Contains(u.Path, "..")
	if !clean || len(text) > 2048 {
		return home
	}
	return u.RequestURI()
}
