package proof

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Error reports that a server is not the expected one.
type Error struct {
	// Address is the address that was dialed.
	Address string
	// Reason describes the fault of the answer.
	Reason string
}

func (e *Error) Error() string {
	return e.Address + " did not prove to be the server of this data folder (" + e.Reason + "), so the folder's token was not sent"
}

const (
	// limit is the timeout of a proof.
	limit = 10 * time.Second
	// answerSize limits an answer in bytes. It is far above the size of a valid one.
	answerSize = 64 << 10
)

// Transport returns a transport that verifies each connection to server ("host:port") before it
// sends a request. The server must prove that it has the key of the data folder. Other
// connections, such as redirects of downloads, are not verified; requests to them carry no
// token. The transport uses no proxy. key reads the current key, because a start of the server
// replaces it.
func Transport(server string, key func() ([]byte, error)) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // documented by net/http
	t.Proxy, t.DisableCompression = nil, true            // lengths and ranges refer to the file
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil || address != server {
			return conn, err
		}
		if err := check(ctx, conn, server, key); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
	return t
}

// check sends a challenge and verifies the answer. It returns an *Error for a wrong answer, and
// another error if the connection fails.
func check(ctx context.Context, conn net.Conn, host string, key func() ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	random := make([]byte, KeySize)
	if _, err := rand.Read(random); err != nil {
		return fmt.Errorf("cannot make a challenge: %w", err)
	}
	address, nonce := canonical(conn.RemoteAddr()), hex.EncodeToString(random)
	got, err := ask(ctx, conn, host, nonce, address)
	if err != nil {
		return err
	}
	secret, err := key()
	if err != nil || len(secret) != KeySize {
		return &Error{address, "the data folder has no key of a running server"}
	}
	if !hmac.Equal(got, sum(secret, nonce, address)) {
		return &Error{address, "its answer is not that of the folder's key"}
	}
	if !stop() { // the deadline of the connection has expired
		return fmt.Errorf("cannot check the server: %w", context.Cause(ctx))
	}
	return nil
}

// ask sends a challenge and returns the MAC of the answer.
func ask(ctx context.Context, conn net.Conn, host, nonce, address string) ([]byte, error) {
	target := url.URL{Scheme: "http", Host: host, Path: Path, RawQuery: url.Values{"nonce": {nonce}, "address": {address}}.Encode()}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("cannot make a challenge: %w", err)
	}
	if err := r.Write(conn); err != nil {
		return nil, fmt.Errorf("cannot send a challenge: %w", err)
	}
	limited := &io.LimitedReader{R: conn, N: answerSize}
	from := bufio.NewReader(limited)
	response, err := http.ReadResponse(from, r)
	if err != nil {
		if _, failed := errors.AsType[net.Error](err); failed || limited.N == answerSize {
			return nil, fmt.Errorf("cannot read the answer to a challenge: %w", err)
		}
		return nil, &Error{address, "its answer is not HTTP"}
	}
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("cannot read the answer to a challenge: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, &Error{address, "it answers the challenge with " + response.Status}
	}
	var a answer
	mac, err := []byte(nil), json.Unmarshal(text, &a)
	if err == nil {
		mac, err = hex.DecodeString(a.Proof)
	}
	if err != nil || response.Close || from.Buffered() > 0 {
		return nil, &Error{address, "its answer is malformed"}
	}
	return mac, nil
}
