package command

import "github.com/spf13/cobra"

func (a *app) demos() []*cobra.Command { return nil }
