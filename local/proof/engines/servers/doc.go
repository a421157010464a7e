// Package servers installs and starts third-party inference servers for tests: llama-server,
// built from source; vLLM; and Triton. The first two use the same model of tinymodel, Triton a
// model without weights. They run on the CPU, and no weights are downloaded.
//
// An installation is in ${XDG_CACHE_HOME:-~/.cache}/sortie, once for each state of its lock
// file. It needs pip with access to its packages. llama-server needs Python 3.13, cmake and a
// C++ compiler. Triton needs Python 3.11 and its library. vLLM needs Python 3.11 and a C
// compiler. If one is missing, the error has the command that installs it.
package servers
