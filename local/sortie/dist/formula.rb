# A release of Sortie for Homebrew on macOS and Linux: brew install ./sortie.rb
class Sortie < Formula
  desc "Serverless run orchestrator"
  homepage "https://github.com/sortie-dev/sortie"
  version "VERSION"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "URL/sortie_VERSION_darwin_arm64.tar.gz"
      sha256 "SHA256 sortie_VERSION_darwin_arm64.tar.gz"
    end
    on_intel do
      url "URL/sortie_VERSION_darwin_amd64.tar.gz"
      sha256 "SHA256 sortie_VERSION_darwin_amd64.tar.gz"
    end
  end

  on_linux do
    on_arm do
      url "URL/sortie_VERSION_linux_arm64.tar.gz"
      sha256 "SHA256 sortie_VERSION_linux_arm64.tar.gz"
    end
    on_intel do
      url "URL/sortie_VERSION_linux_amd64.tar.gz"
      sha256 "SHA256 sortie_VERSION_linux_amd64.tar.gz"
    end
  end

  def install
    bin.install "sortie", "sortie-exec"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/sortie.bash" => "sortie"
    zsh_completion.install "completions/_sortie"
    fish_completion.install "completions/sortie.fish"
  end

  service do
    run [opt_bin/"sortie", "dev", "--data", var/"sortie"]
    keep_alive true
    log_path var/"log/sortie.log"
    error_log_path var/"log/sortie.log"
  end

  test do
    assert_match "sortie #{version},", shell_output("#{bin}/sortie version")
    # Starts the whole system on free ports, and exports a collection.
    system bin/"sortie", "demo", "--data", testpath/"data", "--out", testpath/"out"
    refute_empty Dir[testpath/"out/*.xml"]
  end
end
