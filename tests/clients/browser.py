# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium, driven by chromedriver's WebDriver protocol (W3C). Nothing but Python's library."""
import base64
import json
import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from harness import Failure, need, wait_until

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'
KEYS = {'Enter': '\ue007', 'Escape': '\ue00c', 'ArrowUp': '\ue013', 'ArrowDown': '\ue015', 'End': '\ue010', 'Home': '\ue011'}


class Browser:
    """A window of a browser of its own, with a profile that is thrown away."""

    def __init__(self, width=1300, height=850, dark=False):
        need('chromedriver', 'chromium')
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.log = tempfile.TemporaryFile()
        self.driver = subprocess.Popen(['chromedriver', '--port=0'], stdout=self.log, stderr=subprocess.STDOUT,
                                       env=dict(os.environ, HOME=self.profile.name))
        self.url = wait_until('chromedriver', self.port)
        options = {'args': ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
                            f'--window-size={width},{height}', f'--user-data-dir={self.profile.name}/profile',
                            *(['--force-dark-mode'] if dark else [])]}
        capabilities = {'browserName': 'chrome', 'goog:chromeOptions': options, 'goog:loggingPrefs': {'browser': 'ALL'}}
        self.session = self.call('POST', '/session', {'capabilities': {'alwaysMatch': capabilities}})['sessionId']
        self.size(width, height)

    def port(self):
        text = os.pread(self.log.fileno(), 4096, 0).decode()
        if self.driver.poll() is not None:
            raise Failure(f'chromedriver has ended:\n{text}')
        found = text.rpartition('started successfully on port ')[2].split('.')[0]
        return f'http://127.0.0.1:{found}' if found.isdigit() else None

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={'Content-Type': 'application/json'})
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as error:
            raise Failure(f'{path}: {error.read().decode()[:600]}') from None

    def do(self, method, path, body=None):
        return self.call(method, f'/session/{self.session}{path}', body)

    def size(self, width, height):
        self.do('POST', '/window/rect', {'width': width, 'height': height})

    def media(self, name):
        """Makes the page look as on 'print', or as on the screen again ('')."""
        self.do('POST', '/goog/cdp/execute', {'cmd': 'Emulation.setEmulatedMedia', 'params': {'media': name}})

    def open(self, path):
        """Opens a file. Returns the seconds until it was loaded and drawn."""
        start = time.monotonic()
        self.do('POST', '/url', {'url': 'file://' + path})
        self.js('return document.readyState')
        return time.monotonic() - start

    def js(self, script, *args):
        return self.do('POST', '/execute/sync', {'script': script, 'args': list(args)})

    def settle(self):
        """Waits until what was asked for is drawn."""
        self.do('POST', '/execute/async', {'script': 'const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))',
                                           'args': []})

    def key(self, *keys):
        """Presses keys, wherever the focus is."""
        actions = [{'type': kind, 'value': KEYS.get(key, key)} for key in keys for kind in ('keyDown', 'keyUp')]
        self.do('POST', '/actions', {'actions': [{'type': 'key', 'id': 'keyboard', 'actions': actions}]})
        self.settle()

    def click(self, selector):
        element = self.do('POST', '/element', {'using': 'css selector', 'value': selector})
        self.do('POST', f'/element/{element[ELEMENT]}/click', {})
        self.settle()

    def texts(self, selector):
        return self.js('return [...document.querySelectorAll(arguments[0])].map(element => element.textContent)', selector)

    def count(self, selector):
        return self.js('return document.querySelectorAll(arguments[0]).length', selector)

    def console(self):
        """What the page has told the console since the last call. What the browser says of its own pages is left out."""
        return [entry['message'] for entry in self.do('POST', '/se/log', {'type': 'browser'}) if not entry['message'].startswith('chrome://')]

    def screenshot(self, path):
        with open(path, 'wb') as file:
            file.write(base64.b64decode(self.do('GET', '/screenshot')))

    def close(self):
        try:
            self.do('DELETE', '')
        except (Failure, OSError):
            pass
        self.driver.terminate()
        self.driver.wait(20)
        self.profile.cleanup()

