package cli

import (
	"os"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/client"
)

// chosenURL returns the address of --url or SORTIE_URL, or else of one of the user's servers.
func (a *App) chosenURL(servers []client.Server) (string, error) {
	if a.URL != "" {
		return a.URL, nil
	}
	if given, _ := a.Env("SORTIE_URL"); given != "" {
		return given, nil
	}
	folder, _ := os.Getwd() //nolint:errcheck // without it the folder chooses no server
	address, running := client.Choose(servers, folder)
	if address != "" {
		return address, nil
	}
	var list []string
	for _, s := range running {
		list = append(list, "  "+s.URL+"  "+s.Data)
	}
	return "", Advised{
		Err: Wrong("several servers run on this machine, want --url or SORTIE_URL"), Code: ExitUsage, Hint: strings.Join(list, "\n"),
	}
}
