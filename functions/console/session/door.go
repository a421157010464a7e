package session

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"mime"
	"net"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// The cookies. A browser sends the cookies of a host to all of its ports, so the names of cookies
// contain the port.
const (
	CookieSession = "sortie_console"
	CookieForm    = "sortie_form" // the secret of forms before the sign-in
)

func cookieName(name string, r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		return name + "_" + port
	}
	return name
}

// SetCookie sets a cookie for the console; an empty value removes it. The cookie has no path, so
// it is sent to the folder of the present address: the console, below the path of a stage.
func SetCookie(w http.ResponseWriter, r *http.Request, name, value string, life time.Duration) {
	age := int(life.Seconds())
	if value == "" {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // G124: it is Secure but on loopback, where it would be lost
		Name: cookieName(name, r), Value: value, MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !httpkit.CalledOnLoopback(r),
	})
}

// Cookie returns the value of the only cookie with a name; empty without one.
func Cookie(r *http.Request, name string) string {
	all := r.CookiesNamed(cookieName(name, r))
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// FormLimit is the largest size of a form in bytes. A field has a job document at most.
const FormLimit = 1 << 20

// fieldToken is the field of a form with the token of the session.
const fieldToken = "form"

// CheckForm refuses a form that does not come from the console's own pages, and parses it.
func CheckForm(w http.ResponseWriter, r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		return fault.New(fault.Forbidden, "the request does not say which page it comes from")
	}
	if err := new(http.CrossOriginProtection).Check(r); err != nil || origin == "null" {
		return fault.New(fault.Forbidden, "the request comes from a page of another site")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return fault.New(fault.Forbidden, "the request is not a form")
	}
	r.Body = http.MaxBytesReader(w, r.Body, FormLimit)
	if err := r.ParseForm(); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return fault.New(fault.TooLarge, "the form has more than %d bytes", FormLimit)
		}
		return fault.Invalid("", "malformed form")
	}
	want := FormToken(r)
	if want == "" {
		return fault.New(fault.Forbidden, "the browser sent no cookie with the form; it keeps the cookie only with HTTPS, or for an address of this computer")
	}
	if got := r.PostForm[fieldToken]; len(got) != 1 || subtle.ConstantTimeCompare([]byte(got[0]), []byte(want)) != 1 {
		return fault.New(fault.Forbidden, "the form is from an earlier session; open its page again")
	}
	return nil
}

// FormToken returns the token that the forms of a browser have; empty if it has no cookie.
func FormToken(r *http.Request) string {
	secret := Cookie(r, CookieSession)
	if secret == "" {
		secret = Cookie(r, CookieForm)
	}
	return tokenOf(secret)
}

func tokenOf(secret string) string {
	if secret == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(derived([]byte(secret), "form"))
}

// EnsureForm returns the token of forms for a browser that is not signed in. It sets the cookie
// that the token needs.
func (s *Sessions) EnsureForm(w http.ResponseWriter, r *http.Request) (string, error) {
	if text := tokenOf(Cookie(r, CookieForm)); text != "" {
		return text, nil
	}
	secret, err := s.Secret(24)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(secret)
	SetCookie(w, r, CookieForm, text, time.Hour)
	return tokenOf(text), nil
}
