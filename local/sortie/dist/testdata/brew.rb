# Evaluates a formula without Homebrew: installs an unpacked archive, then runs the formula's test.
#
#   ruby brew.rb FORMULA ARCHIVE_FOLDER PREFIX
require "fileutils"
require "pathname"

class Pathname
  def install(*files)
    mkpath
    files.flatten.each do |file|
      from, to = file.is_a?(Hash) ? file.first : [file, File.basename(file)]
      FileUtils.cp(from, self + to, preserve: true)
    end
  end
end

class Formula
  class << self
    attr_reader :sums, :test_block

    def on_macos = nil
    def on_linux = yield
    def on_arm = nil
    def on_intel = yield
    def version(value = nil) = @version = value || @version
    def url(value) = @url = value
    def sha256(value) = (@sums ||= {})[@url] = value
    def test(&block) = @test_block = block
    def service = nil
    %i[desc homepage license].each { |name| define_method(name) { |text| text.length } }
  end

  def version = self.class.version
  def prefix = Pathname(ARGV[2])
  def bin = prefix/"bin"
  def man1 = prefix/"share/man/man1"
  def bash_completion = prefix/"etc/bash_completion.d"
  def zsh_completion = prefix/"share/zsh/site-functions"
  def fish_completion = prefix/"share/fish/vendor_completions.d"
  def testpath = (prefix/"test").tap(&:mkpath)
  def shell_output(command) = `#{command}`.tap { raise command unless $?.success? }
  def system(*command) = Kernel.system(*command.map(&:to_s)) || raise(command.join(" "))
  def assert_match(want, got) = got.include?(want) || raise("got #{got}, want #{want}")
  def refute_empty(list) = list.empty? && raise("got nothing")
end

load ARGV[0]
formula = Sortie.new
Dir.chdir(ARGV[1]) { formula.install }
formula.instance_eval(&Sortie.test_block)
puts Sortie.sums
