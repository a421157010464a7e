package stack

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/proof"
	"github.com/sortie-dev/sortie/shared/adapter/tokenfile"
	"github.com/sortie-dev/sortie/shared/base/private"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// TokenFile has the data folder's own client token. TokensFile has the records of further
// client tokens.
const (
	TokenFile  = "token"
	TokensFile = "tokens.json"
)

// clientTokens provides the tokens of AUTH_TOKEN, TokensFile and TokenFile. The last one is
// always valid and does not make tokens required.
type clientTokens struct {
	*tokenfile.File
	fixed    []access.Token
	required bool
}

// Current implements httpkit.TokenSource.
func (c clientTokens) Current(ctx context.Context) (tokens []access.Token, required bool, err error) {
	tokens, required, err = c.File.Current(ctx)
	return slices.Concat(c.fixed, tokens), required || c.required, err
}

// openOwner reads or creates the folder's own token, which has all scopes.
func (s *Stack) openOwner() (err error) {
	s.addresses.TokenFile = filepath.Join(s.addresses.Data, TokenFile)
	s.token, err = ownToken(s.addresses.TokenFile)
	s.owner = access.Full("dev", s.token, s.memory.Tenant, s.memory.Tenant)
	return err
}

// openTokens returns the source of client tokens and whether a token is required.
func (s *Stack) openTokens() (tokens httpkit.TokenSource, required bool, err error) {
	file, err := tokenfile.Open(filepath.Join(s.addresses.Data, TokensFile), s.clock)
	if err != nil {
		return nil, false, err
	}
	texts, tenant := s.config.Settings.Tokens, s.memory.Tenant
	c := clientTokens{
		File: file, required: len(texts) > 0,
		fixed: append(access.OfTexts(texts, tenant, tenant), s.owner),
	}
	_, required, err = c.Current(context.Background())
	return c, required, err
}

// ownToken returns the token in a file. It creates a missing file.
func ownToken(path string) (string, error) {
	text, err := access.New(rand.Reader)
	if err == nil {
		err = private.Create(path, []byte(text))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("cannot create the folder's token: %w", err)
	}
	return ReadToken(path)
}

// tokenLimit limits the file in bytes. It is far above the length of a token.
const tokenLimit = 4 << 10

// ReadToken returns the token in a TokenFile.
func ReadToken(path string) (string, error) {
	text, err := private.Read(path, tokenLimit)
	if err != nil {
		return "", fmt.Errorf("cannot read the folder's token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if err := access.CheckText(token); err != nil {
		return "", fmt.Errorf("cannot use the folder's token in %s: %w; remove the file to get another one", path, err)
	}
	return token, nil
}

// CheckAccess returns httpkit.ErrNoToken if other hosts can reach the address or public URL and
// no client token is configured. It creates nothing.
func CheckAccess(addr, dataDir string, settings Settings) error {
	_, records, err := tokenfile.Read(filepath.Join(dataDir, TokensFile))
	if err != nil {
		return err
	}
	_, err = httpkit.CheckAddress(addr, settings.Service.PublicURL, records || len(settings.Tokens) > 0)
	return err
}

// Found returns the own token of a data folder for a server on this host, and a transport that
// verifies the server before it sends a request. The token is empty if the folder has no token,
// or if its server used another address than serverURL.
func Found(dataDir, serverURL string) (token string, prove *http.Transport) {
	if !strings.Contains(serverURL, "://") {
		serverURL = "http://" + serverURL
	}
	server, err := url.Parse(serverURL)
	if err != nil || server.Scheme != "http" {
		return "", nil
	}
	m, err := loadMemory(dataDir)
	if err != nil || !sameAddress(m.Addresses[partAPI], server.Host) {
		return "", nil
	}
	if token, err = ReadToken(filepath.Join(dataDir, TokenFile)); err != nil {
		return "", nil // the server then answers that a token is missing
	}
	return token, proof.Transport(server.Host, func() ([]byte, error) {
		m, err := loadMemory(dataDir)
		if err != nil {
			return nil, err
		}
		return hex.DecodeString(m.Secrets[secretProof])
	})
}

// sameAddress reports whether a loopback URL with the host and port of called reaches a server
// that listens on bound.
func sameAddress(bound, called string) bool {
	boundHost, boundPort, err := net.SplitHostPort(bound)
	calledHost, calledPort, errCalled := net.SplitHostPort(called)
	if err != nil || errCalled != nil || boundPort != calledPort {
		return false
	}
	ip := net.ParseIP(calledHost)
	if calledHost != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false
	}
	at := net.ParseIP(boundHost)
	return at != nil && at.IsUnspecified() || sameHost(boundHost, calledHost)
}

// Tenant returns the tenant of AUTH_TOKEN in a data folder, by default access.Default.
func Tenant(dataDir string) string {
	if m, err := loadMemory(dataDir); err == nil && m.Tenant != "" {
		return m.Tenant
	}
	return access.Default
}
