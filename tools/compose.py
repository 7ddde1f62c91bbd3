"""Write whole couplets with their 横批. (The code: tasks/couplet/compose_command.py.)"""

from this_checkout import run_script

run_script("compose")
